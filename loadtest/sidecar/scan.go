package sidecar

import (
	"bytes"
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the fields that are looked at.
const (
	anyURL, anyValue                = 1, 2
	resourceVersion, resourceAny    = 1, 2
	resourceName                    = 1 // of all four types
	clusterType, clusterEDS         = 2, 3
	edsServiceName                  = 2
	listenerChains, listenerDefault = 3, 25
	listenerAPI                     = 19
	chainFilters, filterConfig      = 3, 4
	connectionManagerRDS, rdsName   = 3, 2

	discoveryEDS = 3 // of Cluster.DiscoveryType
)

// fields calls with each field of a message; number is that of a varint.
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

// each calls with every message at a path of fields.
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

// scan reads a resource that is seen for the first time.
func (t *Table) scan(b []byte, delta bool) (*Resource, error) {
	r := &Resource{Size: len(b)}
	message := b
	if delta {
		message = nil
		err := fields(b, func(num protowire.Number, value []byte, _ uint64) {
			switch num {
			case resourceVersion:
				r.version = string(value)
			case resourceAny:
				message = value
			}
		})
		if err != nil {
			return nil, err
		}
	}
	r.body = maphash.Bytes(t.seed, message)
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
	r.Type = of
	return r, t.read(r, value)
}

// read takes from a resource what the client acts on.
func (t *Table) read(r *Resource, b []byte) error {
	err := fields(b, func(num protowire.Number, value []byte, _ uint64) {
		if num == resourceName {
			r.Name = string(value)
		}
	})
	if err != nil {
		return err
	}
	switch r.Type {
	case Cluster:
		return r.readCluster(b)
	case Endpoint:
		r.Mark = addressMark(b, t.marks.Endpoint)
	case Listener:
		return r.readListener(b)
	case Route:
		r.Mark = numberMark(b, t.marks.Route)
	}
	return nil
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
			_ = each(config, []protowire.Number{anyValue, connectionManagerRDS, rdsName}, func(name []byte) { r.uses = append(r.uses, string(name)) })
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

// numberMark is the largest number that follows mark.
func numberMark(b []byte, mark string) (largest int) {
	for mark != "" {
		i := bytes.Index(b, []byte(mark))
		if i < 0 {
			break
		}
		b = b[i+len(mark):]
		n, _ := digits(b)
		largest = max(largest, n)
	}
	return largest
}

// addressMark is the largest number that the last two bytes of an address after mark make: each is from 100 to 255, so that all addresses are
// equally long.
func addressMark(b []byte, mark string) (largest int) {
	for mark != "" {
		i := bytes.Index(b, []byte(mark))
		if i < 0 {
			break
		}
		b = b[i+len(mark):]
		high, n := digits(b)
		if n == 0 || n >= len(b) || b[n] != '.' {
			continue
		}
		low, _ := digits(b[n+1:])
		largest = max(largest, (high-100)*156+low-100)
	}
	return largest
}
