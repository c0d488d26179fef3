// Package quota bounds what one caller may take, so that there is enough for the others: how often it does something
// (Rate), how much it has at once (Share), and who of those that wait goes on next (Rounds, Turns).
//
// A Caller is the identity that a client has proven, or the address of one that has proven nothing. The counters
// themselves are bounded: a Rate forgets a caller as soon as that has its full allowance again, a Share and Rounds know
// only those who have something or wait.
//
// Everything here is safe for concurrent use but Rounds, which its owner guards. Only Turns.Wait blocks.
package quota
