package proxyconfig

import (
	"maps"
	"slices"
	"testing"
)

// What is laid later replaces whole fields, and metadata by name.
func TestLay(t *testing.T) {
	c := Default()
	for _, text := range []string{
		`{concurrency: 1, proxyMetadata: {A: a, B: b}, tracing: {sampling: 5, zipkin: {address: z:1}}}`,
		`{"concurrency": 3, "proxyMetadata": {"B": "c"}, "tracing": {"sampling": 7}}`,
		"", "{}",
	} {
		if err := Lay(c, text); err != nil {
			t.Fatal(err)
		}
	}
	if c.Concurrency.GetValue() != 3 || c.StatusPort != 15020 || c.Tracing.GetZipkin() != nil || c.Tracing.Sampling != 7 ||
		!maps.Equal(c.ProxyMetadata, map[string]string{"A": "a", "B": "c"}) {
		t.Error(c)
	}
	if err := Lay(c, "statusPort: null"); err != nil || c.StatusPort != 0 {
		t.Error("what is given as null stays:", c.StatusPort, err)
	}
	for _, bad := range []string{"x: 1", "[1]", "a: [", "concurrency: many"} {
		if err := Lay(c, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	unknown, err := LayKnown(c, "{ofTomorrow: 1, concurrency: 4, tracing: {alsoOfTomorrow: 1}}")
	if err != nil || !slices.Equal(unknown, []string{"ofTomorrow"}) || c.Concurrency.GetValue() != 4 {
		t.Error(unknown, err, c.Concurrency)
	}
}
