package sidecar

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/xdstype"
)

// Numbers of the fields that are read.
const (
	anyURL, anyValue                = 1, 2
	resourceVersion, resourceAny    = 1, 2
	resourceName                    = 1 // the same in all four types
	clusterType, clusterEDS         = 2, 3
	edsServiceName                  = 2
	listenerChains, listenerDefault = 3, 25
	listenerAPI                     = 19
	chainFilters, filterConfig      = 3, 4
	connectionManagerRDS, rdsName   = 3, 2

	discoveryEDS = 3 // of xdstype.Cluster.DiscoveryType
)

// fields calls with for each field of a message; number is the value of a varint.
func fields(b []byte, with func(num protowire.Number, value []byte, number uint64)) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		with(num, value, number)
		b = b[n:]
	}
	return nil
}

// each calls with for every message at a path of fields.
func each(b []byte, path []protowire.Number, with func([]byte)) error {
	if len(path) == 0 {
		with(b)
		return nil
	}
	var below error
	err := fields(b, func(num protowire.Number, value []byte, _ uint64) {
		if num == path[0] && value != nil && below == nil {
			below = each(value, path[1:], with)
		}
	})
	if err == nil {
		err = below
	}
	return err
}

// unwrap takes the message and the version out of a Resource of the incremental variant.
func unwrap(b []byte) (message, version []byte, err error) {
	err = fields(b, func(num protowire.Number, value []byte, _ uint64) {
		switch num {
		case resourceVersion:
			version = value
		case resourceAny:
			message = value
		}
	})
	return message, version, err
}

// scan reads a resource that no client has had before.
func (t *Table) scan(message []byte, deep bool) (*Resource, error) {
	var url, value []byte
	err := fields(message, func(num protowire.Number, v []byte, _ uint64) {
		switch num {
		case anyURL:
			url = v
		case anyValue:
			value = v
		}
	})
	of, known := typeOf(url)
	if err != nil || !known {
		return nil, err
	}
	r := &Resource{Type: of, Marks: t.marks.in(of, value, len(value), nil)}
	return r, r.read(value, deep)
}

// read takes from a resource what clients act on.
func (r *Resource) read(b []byte, deep bool) error {
	err := fields(b, func(num protowire.Number, value []byte, _ uint64) {
		if num == resourceName {
			r.Name = string(value)
		}
	})
	switch {
	case err != nil:
		return err
	case r.Type == xdstype.Cluster:
		return r.readCluster(b)
	case r.Type == xdstype.Listener:
		return r.readListener(b)
	case r.Type == xdstype.Route && deep:
		return r.readRoutes(b)
	}
	return nil
}

// use records a name that the resource refers to.
func (r *Resource) use(name []byte) {
	if !slices.Contains(r.uses, string(name)) && len(name) > 0 {
		r.uses = append(r.uses, string(name))
	}
}

// readRoutes records the clusters in the routes of a proxyless client.
func (r *Resource) readRoutes(b []byte) error {
	const hosts, routes, action, cluster, weighted, clusters, name = 2, 3, 2, 1, 3, 1, 1
	if err := each(b, []protowire.Number{hosts, routes, action, cluster}, r.use); err != nil {
		return err
	}
	return each(b, []protowire.Number{hosts, routes, action, weighted, clusters, name}, r.use)
}

func (r *Resource) readCluster(b []byte) error {
	eds, name := false, r.Name
	err := fields(b, func(num protowire.Number, value []byte, number uint64) {
		switch num {
		case clusterType:
			eds = number == discoveryEDS
		case clusterEDS:
			_ = each(value, []protowire.Number{edsServiceName}, func(s []byte) {
				if len(s) > 0 {
					name = string(s)
				}
			})
		}
	})
	if eds {
		r.uses = []string{name}
	}
	return err
}

func (r *Resource) readListener(b []byte) error {
	for _, path := range [][]protowire.Number{
		{listenerChains, chainFilters, filterConfig},
		{listenerDefault, chainFilters, filterConfig},
		{listenerAPI, 1},
	} {
		err := each(b, path, func(config []byte) {
			if !bytes.Contains(config, []byte("HttpConnectionManager")) {
				return
			}
			_ = each(config, []protowire.Number{anyValue, connectionManagerRDS, rdsName}, r.use)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// digits reads the number at the beginning of b.
func digits(b []byte) (n, length int) {
	for length < len(b) && '0' <= b[length] && b[length] <= '9' && length < 9 {
		n = 10*n + int(b[length]-'0')
		length++
	}
	return n, length
}

// mark is a text in resources that is followed by the number of a change.
type mark struct {
	text string
	// number parses the number after the text, and reports whether there is one.
	number func([]byte) (int, bool)
}

// find appends to known the numbers of marks in b that begin before limit.
func (m mark) find(b []byte, limit int, known []int) []int {
	for at := 0; m.text != ""; {
		i := bytes.Index(b[at:], []byte(m.text))
		if i < 0 || at+i >= limit {
			break
		}
		at += i + len(m.text)
		if n, ok := m.number(b[at:]); ok && n > 0 && !slices.Contains(known, n) {
			known = append(known, n)
		}
	}
	return known
}

// address parses the last two bytes of an address as a number. Each byte is between 100 and 255, so that all addresses
// have the same length.
func address(b []byte) (int, bool) {
	high, n := digits(b)
	if n == 0 || n >= len(b) || b[n] != '.' {
		return 0, false
	}
	low, _ := digits(b[n+1:])
	return (high-100)*156 + low - 100, true
}
