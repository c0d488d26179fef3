package main

// ceilings are, for each package that has any, how many arrows between its files lie on cycles (see cycles). They only
// fall.
func ceilings() map[string]int {
	return map[string]int{
		"gen/plan/checked":   0,
		"gen/plan/endpoints": 0,
		"gen/plan/inbound":   0,
		"gen/plan":           24,
		"gen/plan/gateway":   4,
		"gen/plan/outbound":  26,
		"gen/plan/scope":     20,
		"gen/plan/workload":  0,
		"proxy":              0,
	}
}
