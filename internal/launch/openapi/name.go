package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestName leaves space for a server name in front of it, within the limit of model providers.
const longestName = 64

// names assigns tool names that are valid everywhere ([A-Za-z0-9_-], at most 64 characters), unique
// and stable: a name depends on its operation, and on others only if they would get the same name.
func names(ops []*operation) {
	wanted := make(map[string][]*operation)
	for _, op := range ops {
		plain := op.id
		if plain == "" {
			plain = strings.ToLower(op.method) + "_" + op.template
		}
		op.name = legalName(plain)
		if len(op.name) > longestName {
			op.name = op.name[:longestName-7] + "_" + sum(op)
		}
		wanted[op.name] = append(wanted[op.name], op)
	}
	for name, rivals := range wanted {
		if len(rivals) < 2 {
			continue
		}
		for _, op := range rivals {
			if op.id == name && alone(op, rivals) {
				continue // the name is unique
			}
			op.name = name[:min(len(name), longestName-7)] + "_" + sum(op)
		}
	}
}

// alone reports whether no other operation of the list has the same id.
func alone(op *operation, rivals []*operation) bool {
	for _, other := range rivals {
		if other != op && other.id == op.id {
			return false
		}
	}
	return true
}

func legalName(s string) string {
	var b strings.Builder
	gap := false
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			if gap && b.Len() > 0 && c != '_' && !strings.HasSuffix(b.String(), "_") {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(c)
		default:
			gap = true
		}
	}
	if b.Len() == 0 {
		return "operation"
	}
	return b.String()
}

func sum(op *operation) string {
	h := sha256.Sum256([]byte(op.method + " " + op.template))
	return hex.EncodeToString(h[:3])
}
