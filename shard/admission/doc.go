// Package admission decides who is served first when many clients connect at once, and how much their answers may cost.
//
//	client ──Gate──► planner ──► Line of its worker ──Budget──► first answer of each type
//	        a few at a time     by Turn                 bytes under way
//
// A client waits twice: at the Gate, until the planner is asked for it, and in the Line of its worker, with the first
// request of each type. Both are ordered by Turn: who came first, with a handicap for those that need an answer less
// (see Priority). The Budget bounds the bytes that were given to clients that have not shown that they have read them.
//
// A change of configuration or of endpoints never waits here: only the answers to clients that connect do.
package admission
