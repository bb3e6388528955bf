package bench

import (
	"embed"
	"fmt"
	"strings"
)

// examples holds the code to write with Callyard for each row of the published table of lines.
//
//go:embed lines
var examples embed.FS

// exampleFiles returns the files of each row.
func exampleFiles() map[string][]string {
	return map[string][]string{
		"native":  {"native/main.go", "native.sh"},
		"openapi": {"openapi.json", "openapi.sh"},
		"mcp":     {"mcp.json", "mcp.sh"},
		"all":     {"native/main.go", "native.sh", "all.json", "all.sh"},
	}
}

// countLines counts lines of code. It skips empty lines, comments, lone brackets, and the
// package clause and imports of Go.
func countLines(text string) (n int) {
	imports := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "import (":
			imports = true
		case imports:
			imports = line != ")"
		case strings.Trim(line, "{}[](),") == "", strings.HasPrefix(line, "//"), strings.HasPrefix(line, "#"),
			strings.HasPrefix(line, "package "), strings.HasPrefix(line, "import "):
		default:
			n++
		}
	}
	return n
}

// publishedLines counts the lines that a user must write.
func publishedLines(s *figureEnv) error {
	for _, kind := range []string{"native", "openapi", "mcp", "all"} {
		sum := 0
		for _, name := range exampleFiles()[kind] {
			text, err := examples.ReadFile("lines/" + name)
			if err != nil {
				return fmt.Errorf("reading an example: %w", err)
			}
			sum += countLines(string(text))
		}
		s.compare(comparison{key: "lines/" + kind, part: "lines of code", what: kind, unit: "lines", ours: float64(sum)})
	}
	return nil
}
