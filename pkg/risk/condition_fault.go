package risk

import (
	"regexp"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

const syntaxError = "Syntax error: "

// foreignWords maps operators of other languages to advice on how to write them in CEL.
var foreignWords = map[string]string{
	"and": "write && for and", "or": "write || for or", "not": "write ! for not", "is": "write == to compare",
	"then": "a conditional is written condition ? one : other", "=": "write == to compare", "&": "write && for and", "|": "write || for or",
}

// functions are the functions that conditions are likely to call.
var functions = []string{"contains", "endsWith", "has", "lowerAscii", "matches", "size", "split", "startsWith", "substring", "trim", "upperAscii", "exists", "all", "filter", "map", "int", "double", "string", "duration", "timestamp", "type"}

// faultShapes rewrite messages of CEL's parser and checker for readers who do not know CEL.
// The first match applies.
var faultShapes = []struct {
	shape *regexp.Regexp
	say   func(m []string) string
}{
	{regexp.MustCompile(`^undeclared reference to '([^']*)'`), func(m []string) string { return undeclared(m[1]) }},
	{regexp.MustCompile(`^found no matching overload for '_([^_']+)_' applied to '\((.*), (.*)\)'`), func(m []string) string {
		return m[1] + " does not work between " + celType(m[2]) + " and " + celType(m[3]) + "; compare values of the same type."
	}},
	{regexp.MustCompile(`^found no matching overload for '([^'_]+)' applied to '(.*?)\.?\((.*)\)'`), func(m []string) string {
		return m[1] + "() does not accept these arguments: it got (" + celTypes(m[3]) + ")" + onType(m[2]) + "."
	}},
	{regexp.MustCompile(`^found no matching overload for '([^']+)'`), func(m []string) string {
		return strings.Trim(m[1], "_") + " does not work with values of these types."
	}},
	{regexp.MustCompile(`^invalid matches argument`), func([]string) string {
		return "the regular expression of matches() is not valid; correct it (syntax of RE2)."
	}},
	{regexp.MustCompile(`^reserved identifier: (\S+)`), func(m []string) string {
		return quote(m[1]) + " is a reserved word of CEL; conditions have no " + m[1] + ", and a conditional is written condition ? one : other."
	}},
	{regexp.MustCompile(`^Syntax error: (?:mismatched|extraneous) input '<EOF>'`), func([]string) string {
		return "the condition is incomplete; add the missing part, or close the bracket."
	}},
	{regexp.MustCompile(`^Syntax error: missing '(.)' at`), func(m []string) string { return "a " + quote(m[1]) + " is missing." }},
	{regexp.MustCompile(`^Syntax error: token recognition error at: '(["'].*)'`), func([]string) string {
		return "a string begins here and does not end; add the closing quotation mark."
	}},
	{regexp.MustCompile(`^Syntax error: token recognition error at: '(.*?) *'`), func(m []string) string { return misplaced(m[1]) }},
	{regexp.MustCompile(`^Syntax error: (?:mismatched|extraneous) input '([^']*)'`), func(m []string) string { return misplaced(m[1]) }},
	{regexp.MustCompile(`^Syntax error: no viable alternative at input '(.*)'`), func(m []string) string { return misplaced(m[1]) }},
}

// celSentence rewrites a message of CEL in the style of the other faults.
func celSentence(message string) string {
	message = yamldoc.OneLine(message)
	for _, f := range faultShapes {
		if m := f.shape.FindStringSubmatch(message); m != nil {
			return f.say(m)
		}
	}
	message, _, _ = strings.Cut(strings.TrimPrefix(message, syntaxError), " expecting ")
	return strings.TrimSuffix(message, ".") + "."
}

func misplaced(text string) string {
	if fix := foreignWords[strings.ToLower(text)]; fix != "" {
		return quote(text) + " is not used in conditions; " + fix + "."
	}
	return quote(text) + " is unexpected here; check the text before it. and, or and not are written &&, || and !."
}

func undeclared(name string) string {
	if strings.HasPrefix(name, "principal") {
		return "principal has the fields name, owner and groups; use one of them."
	}
	if slices.Contains([]string{"not", "and", "or"}, name) {
		return misplaced(name)
	}
	if near := yamldoc.Nearest(name, []string{"args", "tool", "server", "principal.name", "principal.owner", "principal.groups"}); near != "" {
		return quote(name) + " is unknown; did you mean " + quote(near) + "?"
	}
	for _, f := range functions {
		if strings.EqualFold(f, name) {
			return quote(name) + " is unknown; did you mean " + quote(f) + "?"
		}
	}
	if near := yamldoc.Nearest(name, functions); near != "" {
		return quote(name) + " is unknown; did you mean " + quote(near) + "?"
	}
	return quote(name) + " is unknown; conditions can use args, tool, server, and name, owner and groups of principal."
}

// celType returns a readable name of a CEL type.
func celType(name string) string {
	switch name {
	case "dyn":
		return "a value of the arguments"
	case "string":
		return "a string"
	case "int", "uint", "double":
		return "a number"
	case "bool":
		return "true or false"
	}
	if strings.HasPrefix(name, "list") {
		return "a list"
	}
	if strings.HasPrefix(name, "map") {
		return "a map"
	}
	return name
}

func celTypes(names string) string {
	if names == "" {
		return "nothing"
	}
	parts := strings.Split(names, ", ")
	for i := range parts {
		parts[i] = celType(parts[i])
	}
	return strings.Join(parts, ", ")
}

func onType(name string) string {
	if name == "" {
		return ""
	}
	return " on " + celType(name)
}
