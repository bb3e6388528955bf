package main

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/bench"
	"github.com/callyard/callyard/internal/cli/benchflags"
)

func TestHelpListsAllFigures(t *testing.T) {
	if got := strings.Join(bench.FigureNames(), ","); got != benchflags.Figures {
		t.Errorf("the help names %s, and there are %s", benchflags.Figures, got)
	}
}

func TestKeyFromEnvironmentIsSentToATool(t *testing.T) {
	t.Setenv("CALLYARD_KEY", "s3cret")
	o, err := options([]string{"--url", "http://127.0.0.1:1", "--header", "A: b", "-c", "1,2", "--out=", "demo", "echo", "{}"})
	if err != nil || o.Headers["Authorization"] != "Bearer s3cret" || o.Headers["A"] != "b" || len(o.C) != 2 || o.Out != "" || o.Tool != "echo" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = options([]string{"--url", "http://127.0.0.1:1"}); err != nil || len(o.Headers) != 0 || o.URL != "" {
		t.Errorf("without a tool: %+v, %v", o, err)
	}
	for _, args := range [][]string{{"demo"}, {"demo", "echo", "{}"}, {"--header", "A"}, {"--figures", "all", "--json"}, {"--nothing"}} {
		if _, err := options(args); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
