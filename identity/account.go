package identity

import "strings"

// accountOf reads /ns/NAMESPACE/sa/ACCOUNT.
func accountOf(path string) (namespace, account string, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "ns" || parts[3] != "sa" {
		return "", "", false
	}
	return parts[2], parts[4], true
}

// OfUser returns the namespace and the name of the service account that Kubernetes calls system:serviceaccount:NS:NAME.
func OfUser(user string) (namespace, account string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, account, ok = strings.Cut(rest, ":")
	return namespace, account, ok && namespace != "" && account != "" && !strings.Contains(account, ":")
}
