package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/plainjson"
)

// callArguments returns the arguments of a call from the command line: none, one JSON object, "-"
// for stdin, "@" and a file, or key=value pairs. JSON is passed on byte for byte. Its errors are
// usage errors.
func callArguments(args []string, stdin io.Reader) ([]byte, error) {
	if len(args) == 0 {
		return []byte("{}"), nil
	}
	if len(args) > 1 {
		return pairs(args)
	}
	one := args[0]
	switch {
	case one == "-":
		body, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fail(exitUsage, "The arguments cannot be read from standard input: %w", err)
		}
		return object(bom.Trim(body), "Standard input")
	case strings.HasPrefix(one, "@"):
		body, err := os.ReadFile(one[1:])
		if err != nil {
			return nil, fail(exitUsage, "The arguments cannot be read: %w", err)
		}
		return object(bom.Trim(body), one[1:])
	case strings.HasPrefix(strings.TrimSpace(one), "{"), json.Valid([]byte(one)):
		return object([]byte(one), "The argument after the tool")
	}
	return pairs(args)
}

// object returns the body if it is a JSON object. Callyard validates the rest, such as the tool's
// schema.
func object(body []byte, from string) ([]byte, error) {
	text := bytes.TrimSpace(body)
	if len(text) == 0 {
		return nil, fail(exitUsage, "%s is empty; pass a JSON object, such as {}.", from)
	}
	if !json.Valid(text) {
		return nil, fail(exitUsage, "%s is not valid JSON; check quotes and commas, and enclose it in single quotes for the shell.", from)
	}
	if text[0] != '{' {
		return nil, fail(exitUsage, "%s is JSON, but not an object: the arguments of a tool are {\"name\": value}.", from)
	}
	return body, nil
}

// pairs builds an object from key=value pairs, in their order.
func pairs(args []string) ([]byte, error) {
	seen := make(map[string]bool, len(args))
	body := []byte{'{'}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok || key == "":
			return nil, fail(exitUsage, "%q does not have the form KEY=VALUE. Pass the arguments as KEY=VALUE pairs, a JSON object, - for standard input, or @FILE.", shorten(arg, 40))
		case seen[key]:
			return nil, fail(exitUsage, "The argument %q occurs twice.", shorten(key, 40))
		case !utf8.ValidString(arg):
			return nil, fail(exitUsage, "The argument %q is not UTF-8.", shorten(key, 40))
		}
		if seen[key] = true; len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(append(body, marshal(key)...), ':'), jsonValue(value)...)
	}
	return append(body, '}'), nil
}

// jsonValue returns the text unchanged if it is valid JSON, else as a JSON string.
func jsonValue(text string) []byte {
	if strings.TrimSpace(text) == text && json.Valid([]byte(text)) {
		return []byte(text)
	}
	return marshal(text)
}

// marshal encodes the value as JSON without HTML escapes. The value must be encodable.
func marshal(v any) []byte {
	b, err := plainjson.Marshal(v)
	if err != nil {
		panic("callyard: a value did not encode: " + err.Error())
	}
	return b
}
