package ads

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/xdstype"
	"google.golang.org/protobuf/encoding/protowire"
)

// A stream that subscribes to too many bytes of names ends, and so does one that names much while all streams name too
// much; one that names a little goes on.
func TestBytesOfNamesAreBounded(t *testing.T) {
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(strings.Repeat("x", 1000), i))
		}
		return out
	}
	for _, tc := range []struct {
		all, n int
		want   error
	}{
		{0, 900, nil},
		{0, 1100, ErrTooManyBytes},
		{500_000, 900, ErrAllTooManyBytes},
		{4_000_000, 900, ErrAllTooManyBytes}, // less than four times as much would be left
		{10_000_000, 900, nil},
		{50_000, 60, nil},
	} {
		for _, delta := range []bool{false, true} {
			table := NewNamesTable()
			table.SetLimit(tc.all)
			differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { return 1 })
			s := New(differ, Options{Delta: delta, MaxNameBytes: 1_100_000})
			var got error
			all := names(tc.n)
			// a little more each time, which no single request shows
			for _, part := range [][]string{all[:tc.n/2], all[tc.n/2:]} {
				r := &Request{Delta: delta, TypeURL: xdstype.EndpointURL}
				if delta {
					r.Subscribe = table.Of(part)
				} else {
					r.Names = table.Of(all[:tc.n/2+len(part)/2])
					r.Names = table.Union(r.Names, table.Of(part))
				}
				for _, e := range s.Receive(time.Unix(1000, 0), differ, r) {
					if e.Kind == Exceeded {
						got = e.Err
					}
				}
			}
			if !errors.Is(got, tc.want) || tc.want == nil && got != nil {
				t.Errorf("%d names, %d bytes for all, delta %v: %v, want %v", tc.n, tc.all, delta, got, tc.want)
			}
		}
	}
}

// While all streams name too much, one that repeats what it named goes on, and one that names the same comes in.
func TestNamesThatAreThereCostNothing(t *testing.T) {
	table := NewNamesTable()
	differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { return 1 })
	var names, others []string
	for i := range 900 {
		names = append(names, fmt.Sprint(strings.Repeat("x", 1000), i))
		others = append(others, fmt.Sprint(strings.Repeat("y", 1000), i))
	}
	ask := func(s *Session, names []string) (refused bool) {
		for _, e := range s.Receive(time.Unix(1000, 0), differ,
			&Request{TypeURL: xdstype.EndpointURL, Names: table.Of(names)}) {
			refused = refused || e.Kind == Exceeded
		}
		return refused
	}
	one, same, other := New(differ, Options{}), New(differ, Options{}), New(differ, Options{})
	if ask(one, names) {
		t.Fatal("refused without a limit")
	}
	table.SetLimit(100_000)
	if ask(one, names) || ask(same, names) || !ask(other, others) {
		t.Error("what is there already is refused, or what is not there is not")
	}
}

// Names that have no room are refused when they come, before anybody decides about their request; those that are there
// already are not.
func TestNamesWithoutRoomAreRefusedAtOnce(t *testing.T) {
	table := NewNamesTable()
	table.SetLimit(1 << 20)
	run := func(prefix string, n int) (raw []byte) {
		for i := range n {
			raw = protowire.AppendString(protowire.AppendTag(raw, 3, protowire.BytesType),
				fmt.Sprint(prefix, strings.Repeat("x", 1000), i))
		}
		return raw
	}
	a, err := table.Intern(run("a", 150))
	if err != nil {
		t.Fatal(err)
	}
	var errs [4]error
	_, errs[0] = table.Intern(run("a", 150))
	_, errs[1] = table.Intern(run("b", 300))
	_, errs[2] = table.Intern(run("b", 50))
	table.SetLimit(1)
	_, errs[3] = table.Intern(run("a", 150))
	if errs[0] != nil || !errors.Is(errs[1], ErrAllTooManyBytes) || errs[2] != nil || errs[3] != nil ||
		table.Bytes() > 1<<18 {
		t.Error(errs, table.Bytes())
	}
	runtime.KeepAlive(a)
}

// A set that is refused for want of room costs no memory: whoever is refused may come again as often as he likes. Names
// that are there already in another order are not decoded either.
func TestRefusedNamesAreNotDecoded(t *testing.T) {
	table := NewNamesTable()
	run := func(from, to, step int) (raw []byte) {
		for i := from; i != to; i += step {
			raw = protowire.AppendString(protowire.AppendTag(raw, 3, protowire.BytesType), fmt.Sprint("name-", i))
		}
		return raw
	}
	known, err := table.Intern(run(0, 10_000, 1))
	if err != nil {
		t.Fatal(err)
	}
	table.SetLimit(1)
	refused := run(10_000, 20_000, 1)
	if n := testing.AllocsPerRun(5, func() {
		if _, err := table.Intern(refused); !errors.Is(err, ErrAllTooManyBytes) {
			t.Error(err)
		}
	}); n > 10 {
		t.Errorf("%v allocations for 10,000 names that are refused", n)
	}
	reversed := run(9_999, -1, -1)
	if n := testing.AllocsPerRun(1, func() {
		if again, err := table.Intern(reversed); again != known || err != nil {
			t.Error("names in another order are another set", err)
		}
	}); n > 10 {
		t.Errorf("%v allocations for 10,000 names that are there", n)
	}
}
