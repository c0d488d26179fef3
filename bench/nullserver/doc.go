// Package nullserver is the null server (loadtest/null) with pilotd's transport options.
package nullserver
