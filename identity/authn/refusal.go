package authn

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reason says why a client was refused. Its name is a label of a metric.
type Reason uint8

// The reasons.
const (
	ReasonMissing     Reason = iota // neither a certificate nor a token
	ReasonMalformed                 // what it shows cannot be read
	ReasonCertificate               // nobody who is trusted has signed the certificate
	ReasonExpired                   // certificate or token are not valid at this time
	ReasonTrustDomain               // of another trust domain
	ReasonAudience                  // a token that is meant for somebody else
	ReasonToken                     // a token that nobody vouches for, or of no service account
	ReasonCluster                   // of a cluster that is not known
	ReasonUnavailable               // nobody could be asked
	ReasonOften                     // too many bad tokens from its address in a short time

	// NumReasons is how many there are.
	NumReasons = 10
)

// String returns the reason's name.
func (r Reason) String() string {
	return [NumReasons]string{"missing", "malformed", "certificate", "expired", "trust_domain", "audience", "token",
		"cluster", "unavailable", "often"}[r]
}

// Refusal says why a client is not let in. It never holds what the client has shown.
type Refusal struct {
	Reason Reason
	// Detail is for the client, and for people.
	Detail string
}

// Error returns what the client is told.
func (r *Refusal) Error() string { return "authentication failure: " + r.Detail }

// GRPCStatus returns Unavailable where nobody could be asked, ResourceExhausted where nobody is asked any more,
// otherwise Unauthenticated.
func (r *Refusal) GRPCStatus() *status.Status {
	switch r.Reason {
	case ReasonUnavailable:
		return status.New(codes.Unavailable, r.Error())
	case ReasonOften:
		return status.New(codes.ResourceExhausted, r.Error())
	}
	return status.New(codes.Unauthenticated, r.Error())
}
