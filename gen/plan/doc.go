// Package plan computes what each class of proxies should have.
//
//	View, Proxy ──classify──► Class ──► ResourceSet (sections of Entries, endpoint assignments)
//	Delta ──► the units that it touches ──► the sections of the ResourceSets in use, path-copied
//
// The ResourceSet of a class is a pure function of the Snapshot and the Class; bringing it from one Snapshot to the
// next gives the same ResourceSet as computing it from nothing (invariant I1). A unit is what is computed and replaced
// as a whole: the clusters of one service, one virtual host, one listener. Units are shared between classes through
// encodecache, sections through their chunks.
package plan
