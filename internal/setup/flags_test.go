package setup

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/buildinfo"
)

func TestCommandLineIsParsedOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args           string
		goOn           bool
		code           int
		stdout, stderr string // expected content
	}{
		"nothing":             {goOn: true},
		"a flag":              {args: "--listen :1", goOn: true},
		"the version":         {args: "--version", stdout: "frontdoor " + buildinfo.Read().String() + "\n"},
		"the command version": {args: "version", stdout: "frontdoor " + buildinfo.Read().String() + "\n"},
		"as JSON":             {args: "version --json", stdout: `{"program":"frontdoor","version":"` + Version() + `","commit":"`},
		"help":                {args: "--help", stderr: "Usage: frontdoor [flags]\n"},
		"an unknown command":  {args: "start", code: 2, stderr: `frontdoor: "start" is not a flag`},
		"an unknown flag":     {args: "--port 1", code: 2, stderr: "frontdoor: unknown flag: --port\nTry --help."},
		"logs as JSON":        {args: "--json", code: 2, stderr: "--log-format json"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet("frontdoor", pflag.ContinueOnError)
			AddFlags(fs, "listen")
			var stdout, stderr strings.Builder
			goOn, code := parseFlags(fs, strings.Fields(c.args), &stdout, &stderr)
			if goOn != c.goOn || code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("%t %d\n%s\n%s", goOn, code, stdout.String(), stderr.String())
			}
		})
	}
}
