package chart_test

import (
	"os"
	"testing"

	"github.com/pilotd/pilotd/e2e/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }
