package testnet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
)

// insideEnv tells a test binary that it already runs in its own namespaces.
const insideEnv = "PILOTD_TESTNET_INSIDE"

// runner is the part of testing.M that Run uses.
type runner interface{ Run() int }

// Run runs the tests inside namespaces of their own and returns the exit code. The outer process only waits; the inner
// one gets its output, flags and signals.
func Run(m runner) int {
	if os.Getenv(insideEnv) == "" {
		code, err := again()
		if err != nil {
			fmt.Fprintln(os.Stderr, "testnet: cannot start in a user and network namespace of its own:", err)
			return 1
		}
		return code
	}
	if err := loopbackUp(nil); err != nil {
		fmt.Fprintln(os.Stderr, "testnet:", err)
		return 1
	}
	if err := useOwnResolver(); err != nil {
		fmt.Fprintln(os.Stderr, "testnet:", err)
		return 1
	}
	return m.Run()
}

// users returns the number of users inside: all for root, only the own one for others.
func users() int {
	if os.Getuid() == 0 && os.Getgid() == 0 {
		return 1 << 16
	}
	return 1
}

// Users reports whether programs inside can run as users of their own.
func Users() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(data))
	return len(fields) == 3 && fields[2] != "1"
}

// again runs this program with the same arguments inside new namespaces, and waits for its end.
func again() (int, error) {
	// The kernel kills the child when the thread that started it ends, so keep the thread.
	runtime.LockOSThread()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: users()}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: users()}},
		// Who has several users may be any of them.
		GidMappingsEnableSetgroups: users() > 1,
		Pdeathsig:                  syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 0, err
			}
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return code, nil
			}
			return 0, fmt.Errorf("the tests ended by a signal: %v", cmd.ProcessState)
		}
	}
}

// loopbackUp brings up lo in the namespace of h, or of the process if h is nil.
func loopbackUp(h *netlink.Handle) error {
	if h == nil {
		h = &netlink.Handle{}
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}
