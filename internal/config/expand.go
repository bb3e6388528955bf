package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// variables is an environment: names to values.
type variables map[string]string

// environment splits "NAME=value" pairs; of a name given twice the last counts.
func environment(pairs []string) variables {
	vars := make(variables, len(pairs))
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return vars
}

// expander puts values in place of ${…}. Nil functions leave that form unknown.
type expander struct {
	vars variables
	// special answers forms with a meaning of their own; ok is false for others.
	special func(name string) (value string, ok bool, err error)
}

// expand returns s with ${NAME} and ${NAME:-default} replaced, and whether there
// were any. A name that is not set and has no default is an error, and so is a
// form that is not known; the errors are sentences that hold no value. A "$"
// without "{" means itself, and "$${" stands for "${".
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
