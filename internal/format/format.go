package format

import (
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Format names the shape of tools, calls and results.
type Format string

const (
	MCP       Format = "mcp"              // Model Context Protocol
	OpenAI    Format = "openai"           // OpenAI chat completions, and the many that speak it
	Responses Format = "openai-responses" // OpenAI Responses
	Anthropic Format = "anthropic"        // Anthropic messages
	Gemini    Format = "gemini"           // Gemini and Vertex AI
)

// formats returns all formats.
func formats() []Format { return []Format{MCP, OpenAI, Responses, Anthropic, Gemini} }

// Parse returns the format of that name. The error is of KindInvalidRequest.
func Parse(name string) (Format, error) {
	names := make([]string, 0, 5)
	for _, f := range formats() {
		if string(f) == name {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", schema.Errorf(schema.KindInvalidRequest, "The format does not exist; the formats are %s.", strings.Join(names, ", "))
}

// MaxTools is how many tools the provider takes in one request, 0 where no number
// is documented.
func (f Format) MaxTools() int {
	switch f {
	case OpenAI, Responses:
		return 128
	case Gemini:
		return 512
	}
	return 0
}

// descriptionMost is how many characters the description of a tool may have, 0
// where there is no bound.
func (f Format) descriptionMost() int {
	if f == OpenAI || f == Responses {
		return 1024
	}
	return 0
}

// unreadable is the error for bodies that are not what a provider sends.
func unreadable(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindInvalidRequest, format, args...)
}
