package config

import (
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// entryShape holds the keys of one entry.
type entryShape struct {
	Command        string                 `yaml:"command"`
	Args           []looseString          `yaml:"args"`
	Env            map[string]looseString `yaml:"env"`
	Cwd            string                 `yaml:"cwd"`
	URL            string                 `yaml:"url"`
	Type           string                 `yaml:"type"`
	Transport      string                 `yaml:"transport"`
	Headers        map[string]looseString `yaml:"headers"`
	Auth           authShape              `yaml:"auth"`
	BearerTokenEnv string                 `yaml:"bearerTokenEnv"`
	RemoteKey      looseString            `yaml:"apiKey"`
	RiskLevel      int                    `yaml:"riskLevel"`
	Docker         *Docker                `yaml:"docker"`
	Sandbox        string                 `yaml:"sandbox"`
	Bubblewrap     *Bubblewrap            `yaml:"bubblewrap"`
	Disabled       bool                   `yaml:"disabled"`
	Enabled        bool                   `yaml:"enabled"`

	OpenAPI      string                     `yaml:"openapi"`
	BaseURL      string                     `yaml:"base_url"`
	Credentials  map[string]credentialShape `yaml:"credentials"`
	Include      []Selector                 `yaml:"include"`
	Exclude      []Selector                 `yaml:"exclude"`
	ToolEndpoint *endpointShape             `yaml:"tool_endpoint"`

	Builtin    string      `yaml:"builtin"`
	Roots      []string    `yaml:"roots"`
	Allow      []string    `yaml:"allow"`
	Engine     string      `yaml:"engine"`
	EngineURL  string      `yaml:"engine_url"`
	APIKey     looseString `yaml:"api_key"`
	APIKeyFile string      `yaml:"api_key_file"`

	Attach     bool     `yaml:"attach"`
	AttachKeys []string `yaml:"attach_keys"`

	Sessions         int               `yaml:"sessions"`
	InFlight         int               `yaml:"inFlight"`
	Timeout          time.Duration     `yaml:"timeout"`
	StartTimeout     time.Duration     `yaml:"startTimeout"`
	IdleStop         time.Duration     `yaml:"idleStop"`
	OnDemand         bool              `yaml:"onDemand"`
	Asks             bool              `yaml:"asks"`
	Labels           map[string]string `yaml:"labels"`
	TrustAnnotations bool              `yaml:"trustAnnotations"`
	SafeTools        []string          `yaml:"safeTools"`
	Results          string            `yaml:"results"`
	Pin              string            `yaml:"pin"`

	Retry *retryShape          `yaml:"retry"`
	Tools map[string]toolShape `yaml:"tools"`
}

// looseString accepts numbers and bools as written, as other programs do in environments and
// arguments.
type looseString string

func (s *looseString) UnmarshalText(text []byte) error {
	*s = looseString(text)
	return nil
}

// foreignKeys are keys of other programs that affect neither the command nor its risk. A key that
// does, such as a list of excluded tools, is not among them.
var foreignKeys = [...]string{
	"$comment", "alwaysAllow", "autoApprove", "comment", "description", "dev", "displayName", "gallery", "icon", "icons",
	"name", "note", "notes", "tags", "title", "trust", "version",
}

// meantKeys are keys of other programs that have an equivalent here.
var meantKeys = map[string]string{
	"serverUrl": "write \"url\" instead.", "httpUrl": "write \"url\" instead.", "http_headers": "write \"headers\" instead.",
	"bearer_token_env_var": "write \"bearerTokenEnv\" instead.", "envFile": "write its variables into \"env\".",
	"baseUrl": "write \"base_url\" instead.", "baseURL": "write \"base_url\" instead.", "toolEndpoint": "write \"tool_endpoint\" instead.",
	"working_directory": "write \"cwd\" instead.", "workingDir": "write \"cwd\" instead.",
}

// ServerNameFault finishes the sentence "its name …" for an invalid server name. It returns "" for
// a valid name.
func ServerNameFault(name string) string { return idFault(name) }

// idFault returns the fault of a server name, or "". Names appear in URL paths, so they contain no
// "/".
func idFault(id string) string {
	const most = 64
	switch {
	case id == "":
		return "is empty; give the server a name."
	case utf8.RuneCountInString(id) > most:
		return "is longer than 64 characters; shorten it."
	case id == "." || id == "..":
		return "cannot be used in a URL; choose another."
	case strings.HasPrefix(id, "@"):
		return "begins with \"@\", which marks names of sets in URLs; choose another."
	case strings.TrimSpace(id) != id:
		return "begins or ends with a space; remove it."
	case strings.ContainsFunc(id, func(c rune) bool { return c == '/' || c == utf8.RuneError || !unicode.IsPrint(c) }):
		return "holds a \"/\" or a character that cannot be printed; use letters, digits, \"_\" and \"-\"."
	}
	return ""
}

// clientForms resolves the forms of ${…} that editors support in addition to variables.
func clientForms(path string, vars variables) func(string) (string, bool, error) {
	return func(form string) (string, bool, error) {
		if name, ok := strings.CutPrefix(form, "env:"); ok {
			value, err := (&expander{vars: vars}).value(name)
			return value, true, err
		}
		if id, ok := strings.CutPrefix(form, "input:"); ok {
			return "", true, inputFault(id)
		}
		folder := filepath.Dir(path)
		if base := filepath.Base(folder); base == ".vscode" || base == ".cursor" {
			folder = filepath.Dir(folder)
		}
		switch form {
		case "workspaceFolder":
			return folder, true, nil
		case "workspaceFolderBasename":
			if full, err := filepath.Abs(folder); err == nil {
				folder = full
			}
			return filepath.Base(folder), true, nil
		case "userHome":
			value, err := (&expander{vars: vars}).value("HOME")
			return value, true, err
		case "/", "pathSeparator":
			return string(filepath.Separator), true, nil
		}
		return "", false, nil
	}
}
