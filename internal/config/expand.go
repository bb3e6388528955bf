package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// variables is an environment, by name.
type variables map[string]string

// environment splits "NAME=value" pairs. The last value of a name wins.
func environment(pairs []string) variables {
	vars := make(variables, len(pairs))
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return vars
}

// expander replaces ${…}. A form whose function is nil is unknown.
type expander struct {
	vars variables
	// special resolves special forms; ok is false for any other form.
	special func(name string) (value string, ok bool, err error)
}

// expand returns s with ${NAME} and ${NAME:-default} replaced, and whether it replaced any. A
// name that is not set and has no default is an error, and so is an unknown form. The errors are
// sentences without values. A "$" without "{" is literal, and "$${" is a literal "${".
func (e *expander) expand(s string) (string, bool, error) {
	if e == nil || !strings.Contains(s, "${") {
		return s, false, nil
	}
	var out strings.Builder
	found := false
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), found, nil
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1])
			out.WriteString("${")
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i])
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", false, errors.New("a ${ is not closed; add the }, or write $${ for a literal ${.")
		}
		value, err := e.value(s[i+2 : i+end])
		if err != nil {
			return "", false, err
		}
		out.WriteString(value)
		found = true
		s = s[i+end+1:]
	}
}

func (e *expander) value(form string) (string, error) {
	if e.special != nil {
		if value, ok, err := e.special(form); ok || err != nil {
			return value, err
		}
	}
	name, standby, hasStandby := strings.Cut(form, ":-")
	if !isVariableName(name) {
		return "", fmt.Errorf("${%s} is not a supported form; use ${NAME} or ${NAME:-default}, or write $${ for a literal ${.", shorten(form))
	}
	value, ok := e.vars[name]
	switch {
	case hasStandby && value == "":
		return standby, nil
	case !ok:
		return "", fmt.Errorf("the environment variable %s is not set; set it, or add a default as ${%s:-default}.", name, name)
	}
	return value, nil
}

func isVariableName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func shorten(s string) string { return truncate.Text(s, 40) }
