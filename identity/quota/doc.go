// Package quota limits what one caller may take, so that there is enough for the others: how often it does something
// (Rate), how much it has at once (Share), and in which order those that wait continue (Rounds, Turns).
//
// A Caller is the identity that a client has proven, or the address of a client that has proven none. The state itself
// is bounded: a Rate forgets a caller once its allowance is full again; a Share and Rounds store only callers that have
// something or wait.
//
// All types are safe for concurrent use except Rounds, which its owner guards. Only Turns.Wait blocks.
package quota
