package value

import "strings"

// CompareAge orders objects as conflicts are decided: the oldest first.
func CompareAge(a, b Meta) int {
	switch {
	case a.Older(b):
		return -1
	case b.Older(a):
		return 1
	}
	return 0
}

// OlderService orders services as conflicts are decided: by age, then host, then namespace.
func OlderService(a, b *Service) int {
	switch {
	case a.Created != b.Created && a.Created < b.Created, a.Created == b.Created && a.Host < b.Host:
		return -1
	case a.Created != b.Created || a.Host != b.Host:
		return 1
	}
	return strings.Compare(a.Namespace, b.Namespace)
}
