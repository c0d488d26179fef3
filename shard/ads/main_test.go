package ads

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write what the Sessions say into the transcripts")
	flag.Parse()
	os.Exit(m.Run())
}
