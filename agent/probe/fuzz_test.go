package probe

import (
	"strings"
	"testing"
)

// FuzzReadAll has each text be refused in one line, or become probes that can be asked.
func FuzzReadAll(f *testing.F) {
	f.Add("")
	f.Add(`{"/app-health/app/readyz":{"httpGet":{"path":"/ready","port":8080,"scheme":"HTTPS","httpHeaders":[{"name":"a"}]}}}`)
	f.Add(`{"/app-health/app/livez":{"tcpSocket":{"port":"8081"},"timeoutSeconds":-1}}`)
	f.Add(`{"/app-lifecycle/app/prestopz":{"grpc":{"port":0}}}`)
	f.Add(`{"x":{"exec":{"command":[]}}}`)
	f.Add(`{"x":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ReadAll(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q is not one line", err)
			}
			return
		}
		for name, p := range all {
			if p == nil {
				t.Fatalf("%q has no probe", name)
			}
			if err := p.Check(); err != nil {
				t.Fatal(name, err)
			}
		}
	})
}
