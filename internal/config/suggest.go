package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// hint returns the fix for an unknown name: the most similar known name, or else a list of all.
func hint(name string, known []string) string {
	if near := yamldoc.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "no keys are allowed here; remove it."
	}
	const most = 12
	names := slices.Sorted(slices.Values(known))
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return "the known keys here are " + strings.Join(names, ", ") + more + "."
}
