package ads

import "github.com/pilotd/pilotd/xdstype"

// numTypes is the number of types that the tests serve.
const numTypes = xdstype.NumStandard
