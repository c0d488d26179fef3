package shard

import (
	"slices"
	"strings"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// Refusal is what a client refused.
type Refusal struct {
	Proxy *proxy.Proxy
	Type  xdstype.Type
	// Names are the resources that it is attributed to; empty while it is not known which.
	Names []string
	// Offences are what is held back because of it and is known to all clients. What is held back from one client that
	// refuses without end is not among them.
	Offences []Offence
	// Message is the client's, at most 4 KiB of it.
	Message string
}

// Offence is something that a client refused, and the objects that it was made from.
type Offence struct {
	ads.Culprit
	// Row is that of the type.
	Row *xdstype.Row
	// Objects are the objects that it was made from, those that say most of it first. There are none for fragments that
	// were made from no object.
	Objects []value.ObjectKey
}

// Resource names what is refused: "RDS 80, virtual host a.example.com:80".
func (o Offence) Resource() string {
	name := o.Row.Short + " " + o.Name
	if o.Part == "" || strings.HasPrefix(o.Part, "#") { // a part without a name
		return name
	}
	return name + ", " + o.Row.Parts.Noun + " " + o.Part
}

// refusalOf returns the Refusal that an Effect of a client reports.
func (s *Shards) refusalOf(p *proxy.Proxy, e ads.Effect) Refusal {
	return Refusal{Proxy: p, Type: e.Type, Names: e.Names, Offences: s.offencesOf(e.Offences), Message: e.Message}
}

// offencesOf traces what was refused to the objects.
func (s *Shards) offencesOf(in []ads.Offence) []Offence {
	out := make([]Offence, 0, len(in))
	for _, o := range in {
		next := Offence{Culprit: o.Culprit, Row: s.opts.Types.Row(o.Type)}
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
