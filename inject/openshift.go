package inject

import (
	"fmt"
	"strconv"
	"strings"
)

// Annotations of OpenShift's namespaces: as whom pods may run there.
const (
	uidRange = "openshift.io/sa.scc.uid-range"
	gidRange = "openshift.io/sa.scc.supplemental-groups"
)

// defaultID is the user and the group of proxies elsewhere.
const defaultID = 1337

// proxyIDs returns the user and the group that a namespace's proxies run as: the last of its ranges, for applications
// get the first.
func proxyIDs(namespace map[string]string) (uid, gid int64, err error) {
	uid, gid = defaultID, defaultID
	if text, ok := namespace[uidRange]; ok {
		if uid, err = lastOf(text); err != nil {
			return 0, 0, fmt.Errorf("annotation %s of the namespace: %w", uidRange, err)
		}
	}
	if text, ok := namespace[gidRange]; ok {
		head, _, _ := strings.Cut(text, ",")
		if gid, err = lastOf(head); err != nil {
			return 0, 0, fmt.Errorf("annotation %s of the namespace: %w", gidRange, err)
		}
	}
	return uid, gid, nil
}

// lastOf returns the last number of a range, which is written as its first one and its size, or as its first and its
// last.
func lastOf(text string) (int64, error) {
	bad := fmt.Errorf("%q: expected a range such as 1000/10000 or 1000-10999", text)
	head, tail, isSize := strings.Cut(strings.TrimSpace(text), "/")
	if !isSize {
		var ok bool
		if head, tail, ok = strings.Cut(strings.TrimSpace(text), "-"); !ok {
			return 0, bad
		}
	}
	from, err := strconv.ParseUint(head, 10, 31)
	if err != nil {
		return 0, bad
	}
	to, err := strconv.ParseUint(tail, 10, 31)
	if err != nil {
		return 0, bad
	}
	if isSize {
		to = from + to - 1
	}
	if to < from {
		return 0, bad
	}
	return int64(to), nil
}
