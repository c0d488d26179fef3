package shard

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
)

// Refusal is what a client refused.
type Refusal struct {
	Proxy *proxy.Proxy
	Type  ads.Type
	// Names are the resources that it is attributed to; empty while it is not known which.
	Names []string
	// Offences are what is held back for it, of what is shared by all clients: that of one client that refuses without
	// end is not.
	Offences []Offence
	// Message is the client's, at most 4 KiB of it.
	Message string
}

// Offence is something that a client refused, and the objects that it was made from.
type Offence struct {
	ads.Culprit
	// Objects are those that say most of it first. There may be none: what other fragments hold is traced in vain.
	Objects []value.ObjectKey
}

// Resource names what is refused: "RDS 80, virtual host a.example.com:80".
func (o Offence) Resource() string {
	name := o.Type.String() + " " + o.Name
	switch {
	case o.Part == "" || strings.HasPrefix(o.Part, "#"): // a part without a name
		return name
	case o.Type == ads.Routes:
		return name + ", virtual host " + o.Part
	}
	return name + ", filter chain " + o.Part
}

// refusalOf is an Effect of a member as it is told.
func refusalOf(p *proxy.Proxy, e ads.Effect) Refusal {
	return Refusal{Proxy: p, Type: e.Type, Names: e.Names, Offences: offencesOf(e.Offences), Message: e.Message}
}

// offencesOf traces what was refused to the objects.
func offencesOf(in []ads.Offence) []Offence {
	out := make([]Offence, 0, len(in))
	for _, o := range in {
		next := Offence{Culprit: o.Culprit}
		for _, origin := range o.Origins {
			of, ok := origin.(value.Origin)
			if !ok {
				continue
			}
			for _, key := range of.Objects() {
				if !slices.Contains(next.Objects, key) {
					next.Objects = append(next.Objects, key)
				}
			}
		}
		out = append(out, next)
	}
	return out
}
