package e2e_test

import (
	"os"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

func TestMain(m *testing.M) {
	if parts.GRPCClientMain() {
		return
	}
	os.Exit(testnet.Run(m))
}
