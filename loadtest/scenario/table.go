package scenario

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/xdstype"
)

// Title describes in one line what ran against what.
func (r *Report) Title() string {
	var kinds []string
	for _, k := range r.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d × %s", k.Clients, k.Name))
	}
	out := fmt.Sprintf("%s on %s, %s", strings.Join(kinds, ", "), r.Target, r.Protocol)
	if r.TLS {
		out += ", TLS"
	}
	if r.Shared > 1 {
		out += fmt.Sprintf(", %d streams on each connection", r.Shared)
	}
	return out
}

// Write prints the report as tables.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\n\n", r.Title())
	for _, row := range append([][]string{PhaseColumns()}, r.PhaseRows()...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	fmt.Fprintln(t)
	for _, row := range append([][]string{TypeColumns()}, r.TypeRows()...) {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	for _, line := range r.Remarks() {
		fmt.Fprintf(t, "\n%s\n", line)
	}
	return t.Flush()
}

// PhaseColumns returns the column titles of PhaseRows.
func PhaseColumns() []string {
	return []string{"phase", "changes", "clients", "first", "median", "p99", "last", "messages", "bytes", "useless",
		"server CPU", "memory", "peak", "own CPU", "own memory"}
}

// PhaseRows returns the figures of each phase.
func (r *Report) PhaseRows() (out [][]string) {
	for i := range r.Phases {
		p := &r.Phases[i]
		c, l, concerned := p.Total(), p.Latency, p.Concerned
		if p.Changes == 0 {
			concerned = l.Samples
		}
		out = append(out, []string{p.Name, fmt.Sprint(p.Changes), fmt.Sprint(concerned), measure.Short(l.First),
			measure.Short(l.Median), measure.Short(l.P99),
			measure.Short(l.Last), fmt.Sprint(c.Messages), Size(c.Bytes), fmt.Sprint(c.Useless), measure.Short(p.CPU),
			Size(p.Resident), Size(p.Peak),
			measure.Short(p.Own), Size(p.OwnResident)})
	}
	return out
}

// TypeColumns returns the column titles of TypeRows.
func TypeColumns() []string {
	return []string{"phase", "type", "messages", "resources", "bytes", "useless", "of bytes", "refused"}
}

// TypeRows returns the figures of each phase and type.
func (r *Report) TypeRows() (out [][]string) {
	for _, p := range r.Phases {
		for _, name := range typeNames() {
			if c := p.Types[name]; c.Messages > 0 {
				out = append(out, []string{p.Name, name, fmt.Sprint(c.Messages), fmt.Sprint(c.Resources), Size(c.Bytes),
					fmt.Sprint(c.Useless),
					Size(c.UselessBytes), fmt.Sprint(c.Refused)})
			}
		}
	}
	return out
}

// Remarks returns sentences about what went wrong or is worth knowing.
func (r *Report) Remarks() (out []string) {
	for _, p := range r.Phases {
		if p.Missing > 0 {
			out = append(out, fmt.Sprintf("%s: %d receipts are missing", p.Name, p.Missing))
		}
		if p.Ended > 0 {
			out = append(out, fmt.Sprintf("%s: %d streams or attempts to have one ended", p.Name, p.Ended))
		}
		if p.Growth != 0 && p.Changes > 0 {
			out = append(out, fmt.Sprintf("%s: memory grows by %s an hour", p.Name, signed(p.Growth*3600)))
		}
	}
	if r.Ended > 0 {
		out = append(out, fmt.Sprintf("%d streams ended that should not have; the first: %s", r.Ended, r.FirstError))
	}
	return out
}

func signed(bytes float64) string {
	if bytes < 0 {
		return "-" + Size(int64(-bytes))
	}
	return Size(int64(bytes))
}

// typeNames returns the names of types in reports; the last is for responses that no client asked for.
func typeNames() (out []string) {
	for _, row := range xdstype.Standard().Rows() {
		out = append(out, row.Short)
	}
	return append(out, "other")
}

// Size formats a number of bytes for people.
func Size(n int64) string {
	switch f := float64(n); {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
