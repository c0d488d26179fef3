package secrets

import "errors"

// Refusal is why somebody does not get what he asks for.
type Refusal uint8

const (
	// BadName is a name that is not of a secret.
	BadName Refusal = iota
	// Foreign is a name of another namespace.
	Foreign
	// NoRight is a Secret's name from a service account that may not list Secrets, or of which nobody can say it.
	NoRight
	// TooMany is a name beyond those that are looked for.
	TooMany
	// Missing is a name of an object that is not there.
	Missing
	// Broken is a name of an object that cannot be read or used.
	Broken

	// NumRefusals is how many reasons there are.
	NumRefusals = iota
)

func (r Refusal) String() string {
	return [NumRefusals]string{"name", "namespace", "right", "bound", "missing", "broken"}[r]
}

// refusedError is why a name is refused.
type refusedError struct {
	why  Refusal
	text string
}

// Error implements error.
func (e *refusedError) Error() string { return e.text }

// refusal returns which reason an error is; Broken for those that say nothing.
func refusal(err error) Refusal {
	r := (*refusedError)(nil)
	switch {
	case errors.As(err, &r):
		return r.why
	case errors.Is(err, errTooMany):
		return TooMany
	case errors.Is(err, errName):
		return BadName
	}
	return Broken
}
