package capture

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// dialEnv has the test's program connect to an address, as whoever it runs as, and print what it hears.
const dialEnv = "PILOTD_CAPTURE_DIAL"

func TestMain(m *testing.M) {
	if to := os.Getenv(dialEnv); to != "" {
		fmt.Print(hear(net.DialTimeout("tcp", to, 5*time.Second)))
		return
	}
	os.Exit(testnet.Run(leakChecked{m}))
}

// leakChecked runs tests and then looks for goroutines that are left.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// hear is what the other side of a connection says.
func hear(c net.Conn, err error) string {
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
