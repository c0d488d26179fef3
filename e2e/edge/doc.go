// Package edge makes objects whose fields have values at and beyond the edge of what is allowed, and keeps a mesh of
// them beside a well-behaved tenant whose traffic is watched.
//
//	Go types, protobuf descriptors ─► Shape ─► Paths: every field of every kind
//	                                              │
//	          Values: edge values of a field  ────┤
//	          Templates: valid objects            ▼
//	                                           Maker ─► Object ─► pilotd ─► Envoy: update_rejected must stay 0
//	                                                                          ▲
//	                                         Shrink: the least object that ───┘ is still refused
//
// A Shape is what the package knows of a type: its fields, lists, maps and scalars, read by reflection, so that a new
// field of a newer API is covered without a change here. A Maker takes a valid object of a kind and gives one to three
// of its fields an edge value; some objects are random throughout. Its choices follow from a seed alone.
//
// The tests start pilotd, three Envoys of the tenant that behaves (a sidecar over Delta, one over SotW, a gateway), and
// two sidecars of the hostile tenant. They apply the objects in batches. After each batch an edit of the good tenant
// must arrive, no Envoy may have refused anything, and pilotd must live. A refusal is traced to one object, which is
// shrunk and printed as a case for testdata.
package edge
