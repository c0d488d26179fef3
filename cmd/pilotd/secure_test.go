package main

import (
	"strings"
	"testing"

	"github.com/pilotd/pilotd/cluster"
)

// What istiod takes from the environment about callers and certificates is taken, refused by name, or said to have no
// effect.
func TestSecurityFromTheEnvironment(t *testing.T) {
	read := func(t *testing.T, name, value string) (*options, error) {
		t.Setenv(name, value)
		o := &options{secureOptions: secureOptions{ca: "own"}}
		return o, o.secureOptions.environment()
	}
	for name, value := range map[string]string{
		"CA_TRUSTED_NODE_ACCOUNTS": "istio-system/ztunnel,ztunnel",
		"EXTERNAL_CA":              "ISTIOD_RA_KUBERNETES_API",
		"CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL": "often",
		"DEFAULT_WORKLOAD_CERT_TTL":                    "-1h",
		"PILOT_ENABLE_XDS_IDENTITY_CHECK":              "maybe",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, name, value); err == nil || !strings.Contains(err.Error(), name+"="+`"`+value) {
				t.Error(err)
			}
		})
	}
	t.Run("agents of nodes", func(t *testing.T) {
		o, err := read(t, "CA_TRUSTED_NODE_ACCOUNTS", "istio-system/ztunnel, kube-system/ztunnel,")
		second := cluster.Account{Namespace: "kube-system", Name: "ztunnel"}
		if err != nil || len(o.nodeAgents) != 2 || o.nodeAgents[1] != second {
			t.Error(o.nodeAgents, err)
		}
	})
	for _, name := range []string{"TRUSTED_GATEWAY_CIDR", "XDS_AUTH", "K8S_SIGNER",
		"PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS"} {
		if ignored()[name] == "" {
			t.Error(name, "is passed over in silence")
		}
	}
}

// JWT_RULE has an issuer, audiences, and where the keys are; what it lacks is said.
func TestRuleOfTokens(t *testing.T) {
	for rule, good := range map[string]bool{
		"": true,
		`{"issuer": "https://a", "audiences": ["istio-ca"]}`:                              true,
		`{"issuer": "https://a", "jwksUri": "https://a/keys", "audiences": ["istio-ca"]}`: true,
		`{"issuer": "https://a"}`:                                                    false,
		`{"audiences": ["istio-ca"]}`:                                                false,
		`{"issuer": "https://a", "jwks": "{}", "audiences": ["istio-ca"]}`:           false,
		`{"issuer": "https://a", "audiences": ["istio-ca"], "surprise": true}`:       false,
		`{"issuer": "https://a", "audiences": ["istio-ca"]} {"issuer": "https://b"}`: false,
	} {
		o := secureOptions{jwtRule: rule}
		if _, err := o.issuers(); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "JWT_RULE") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
