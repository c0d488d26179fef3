// Package program is what pilotd's programs have in common on their command line.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/build"
)

// Root returns the command that a program is. Errors of commands are left to Main.
func Root(name, short string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: name, Short: short, SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(commands...)
	return root
}

// Main executes a Root with the arguments of the process, and ends the process with code 1, or that of WithCode, if
// that fails, after a line that says why. The context of commands ends with SIGINT or SIGTERM.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
		code := 1
		if c, ok := errors.AsType[*coded](err); ok {
			code = c.code
		}
		os.Exit(code)
	}
}

// WithCode returns the error with the code that Main ends the process with.
func WithCode(code int, err error) error { return &coded{err, code} }

type coded struct {
	error
	code int
}

// Unwrap returns the error without its code.
func (c *coded) Unwrap() error { return c.error }

// Version returns the command "version" of a program: it prints one line with the program's name, its build, platform
// and Go version, and after them what else there is to say of this build.
func Version(name string, more ...string) *cobra.Command {
	line := append([]string{name, build.Text(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}, more...)
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(line, " "))
		},
	}
}
