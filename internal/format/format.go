package format

import (
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Format is the format of tools, calls and results.
type Format string

const (
	MCP       Format = "mcp"              // Model Context Protocol
	OpenAI    Format = "openai"           // OpenAI chat completions and compatible providers
	Responses Format = "openai-responses" // OpenAI Responses
	Anthropic Format = "anthropic"        // Anthropic messages
	Gemini    Format = "gemini"           // Gemini and Vertex AI
)

// formats returns all formats.
func formats() []Format { return []Format{MCP, OpenAI, Responses, Anthropic, Gemini} }

// Parse returns the format with that name. The error is of KindInvalidRequest.
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

// MaxTools returns the number of tools that the provider accepts in one request, or 0 if no limit
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

// maxDescription returns the maximum length of a tool description in characters. 0 means no limit.
func (f Format) maxDescription() int {
	if f == OpenAI || f == Responses {
		return 1024
	}
	return 0
}

// unreadable returns the error for a body that cannot be parsed.
func unreadable(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.KindInvalidRequest, format, args...)
}
