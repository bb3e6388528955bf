package fabric_test

import (
	"bytes"
	"os"
	"testing"
)

func TestDocsShowTheExampleUnchanged(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/how-to/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(docs, append(append([]byte("```go\n"), example...), "```\n"...)) {
		t.Error("docs/how-to/testing.md does not show e2e/fabric/example_test.go as it is")
	}
}
