package file

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes and goes, ages grow in path order, and none moves unless add says so.
func TestAgesGrowInPathOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o order
		there, ages := map[string]*content{}, map[string]int64{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			// Few first letters: new files crowd between the same neighbours.
			path := rapid.StringMatching("[ab]{0,2}[a-z]{0,20}").Draw(t, "path")
			if c := there[path]; c != nil {
				o.remove(c)
				delete(there, path)
				delete(ages, path)
				continue
			}
			there[path] = &content{path: path}
			moved := o.add(there[path])
			for path, c := range there {
				if was, ok := ages[path]; ok && was != c.age && !moved {
					t.Fatalf("%s moved from %d to %d", path, was, c.age)
				}
				ages[path] = c.age
			}
			inOrder(t, &o, len(there))
		}
	})
}

func inOrder(t interface{ Fatalf(string, ...any) }, o *order, files int) {
	if len(o.files) != files {
		t.Fatalf("%d files, want %d", len(o.files), files)
	}
	last := content{}
	for _, c := range o.files {
		if c.age <= last.age || c.age >= newest || last.age > 0 && c.path <= last.path {
			t.Fatalf("%q of age %d comes after %q of age %d", c.path, c.age, last.path, last.age)
		}
		last = *c
	}
}

// Files that come one after the other between the same two, or after all others.
func TestAgesThatRunOutAreSpread(t *testing.T) {
	for name, path := range map[string]func(i int) string{
		"in the middle": func(i int) string { return fmt.Sprintf("b%06d", 1000000-i) },
		"at the end":    func(i int) string { return fmt.Sprintf("x%06d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			var o order
			o.add(&content{path: "a"})
			o.add(&content{path: "c"})
			spread, n := 0, 30000
			for i := range n {
				if o.add(&content{path: path(i)}) {
					spread++
				}
			}
			inOrder(t, &o, n+2)
			if spread == 0 || spread > n/8 {
				t.Errorf("spread %d times for %d files", spread, n)
			}
		})
	}
}
