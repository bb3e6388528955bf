package settings

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/telemetry"
)

// Slack is the section approver.slack of the configuration.
type Slack struct {
	// BotToken is the token of the app in the workspace (xoxb-…). If empty, Slack is not used.
	BotToken     telemetry.Secret `yaml:"bot_token"`
	BotTokenFile string           `yaml:"bot_token_file"`
	// AppToken (xapp-…) enables Socket Mode: Callyard connects to Slack, and Slack need not reach
	// Callyard.
	AppToken     telemetry.Secret `yaml:"app_token"`
	AppTokenFile string           `yaml:"app_token_file"`
	// SigningSecret enables the HTTP endpoint, for which Slack must reach Callyard.
	SigningSecret     telemetry.Secret `yaml:"signing_secret"`
	SigningSecretFile string           `yaml:"signing_secret_file"`
	// TeamID and AppID are the workspace and the app. Requests of others are refused.
	TeamID string `yaml:"team_id"`
	AppID  string `yaml:"app_id"`
	// Channels maps groups to channels. DefaultChannel is for other groups. If empty, those decide on
	// the pages only.
	Channels       map[string]string `yaml:"channels"`
	DefaultChannel string            `yaml:"default_channel"`
	// MaxLevel is the highest risk level that can be decided in Slack, whatever the policy allows.
	MaxLevel int `yaml:"max_level"`
	// SignInFor is the time for which the groups of a sign-in at the provider are valid in Slack.
	SignInFor time.Duration `yaml:"sign_in_for"`
	// DenyReasons are suggested to people who deny.
	DenyReasons []string `yaml:"deny_reasons"`
	// APIURL is the address of the Web API, for gateways and tests.
	APIURL string `yaml:"api_url"`
}

// SlackDefaults returns the default section.
func SlackDefaults() Slack {
	return Slack{MaxLevel: 2, SignInFor: 24 * time.Hour, DenyReasons: []string{"Not needed", "Wrong arguments", "Not now", "Ask me first"}, APIURL: "https://slack.com/api/"}
}

// Configured reports whether Slack is set up.
func (c Slack) Configured() bool { return c.BotToken != "" || c.BotTokenFile != "" }

// Endpoint reports whether Slack reaches Callyard over HTTP.
func (c Slack) Endpoint() bool {
	return c.Configured() && (c.SigningSecret != "" || c.SigningSecretFile != "")
}

func (c Slack) socket() bool { return c.AppToken != "" || c.AppTokenFile != "" }

// slackChannel matches the id of a channel.
var slackChannel = regexp.MustCompile(`^[CG][A-Z0-9]{1,32}$`)

const notSlackChannel = "must be the id of a channel (C…), not its name; the channel's details in Slack show it."

// maxDenyReason is Slack's limit for the text of a menu entry, in characters.
const maxDenyReason = 75

// Validate returns the settings that are invalid; see package config.
func (c Slack) Validate() []config.Fault {
	var faults config.Collector
	if !c.Configured() {
		if c.socket() || c.SigningSecret != "" || c.SigningSecretFile != "" || c.TeamID != "" || c.AppID != "" || len(c.Channels) > 0 || c.DefaultChannel != "" {
			faults.Addf("bot_token", "is missing: set bot_token_file to the file with the app's xoxb- token, or omit the section.")
		}
		return faults
	}
	for _, s := range []struct {
		key    string
		secret telemetry.Secret
		file   string
		prefix string
	}{
		{"bot_token", c.BotToken, c.BotTokenFile, "xoxb-"}, {"app_token", c.AppToken, c.AppTokenFile, "xapp-"}, {"signing_secret", c.SigningSecret, c.SigningSecretFile, ""},
	} {
		if s.secret != "" && s.file != "" {
			faults.Addf(s.key+"_file", "and %s are both set; keep one.", s.key)
			continue
		}
		if s.secret == "" && s.file == "" {
			continue
		}
		text, err := secret(s.secret, s.file)
		switch {
		case err != nil:
			faults.Addf(s.key+"_file", "cannot be read: %v.", err)
		case text == "":
			faults.Addf(s.key+"_file", "is empty.")
		case !strings.HasPrefix(text, s.prefix):
			faults.Addf(s.key, "does not begin with %s: it is a different kind of token.", s.prefix)
		}
	}
	if !c.socket() && !c.Endpoint() {
		faults.Addf("app_token", "and signing_secret are both missing: without one of them clicks do not arrive. app_token is for Socket mode, signing_secret for the HTTP endpoint.")
	}
	for _, id := range []struct{ key, value, form, where string }{
		{"team_id", c.TeamID, `^T[A-Z0-9]{1,32}$`, "it is in the workspace's URL in a browser (T…)"},
		{"app_id", c.AppID, `^A[A-Z0-9]{1,32}$`, "it is on the app's page Basic Information (A…)"},
	} {
		if !regexp.MustCompile(id.form).MatchString(id.value) {
			faults.Addf(id.key, "is missing or invalid: %s.", id.where)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(c.Channels)) {
		if !slackChannel.MatchString(c.Channels[group]) {
			faults.Addf("channels."+group, "%s", notSlackChannel)
		}
	}
	if c.DefaultChannel != "" && !slackChannel.MatchString(c.DefaultChannel) {
		faults.Addf("default_channel", "%s", notSlackChannel)
	}
	if len(c.Channels) == 0 && c.DefaultChannel == "" {
		faults.Addf("channels", "is missing: set the channel of each group, or a default_channel.")
	}
	if c.MaxLevel < 0 || c.MaxLevel > 3 {
		faults.Addf("max_level", "must be a number from 0 to 3.")
	}
	faults.Positive("sign_in_for", c.SignInFor > 0)
	if len(c.DenyReasons) > 50 || slices.ContainsFunc(c.DenyReasons, func(s string) bool {
		return strings.TrimSpace(s) == "" || utf8.RuneCountInString(s) > maxDenyReason
	}) {
		faults.Addf("deny_reasons", "must be at most 50 strings of 1 to %d characters.", maxDenyReason)
	}
	if u, err := url.Parse(c.APIURL); err != nil || u.Host == "" || !strings.HasSuffix(u.Path, "/") || u.Scheme != "https" && (u.Scheme != "http" || !urls.Loopback(u.Hostname())) {
		faults.Addf("api_url", "must be an https URL that ends in a slash; http is allowed for loopback only.")
	}
	return faults
}

func secret(given telemetry.Secret, file string) (string, error) {
	if file == "" {
		return given.Reveal(), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// SlackSecrets are the three secrets of [Slack]. A secret that is not set is "".
type SlackSecrets struct{ Bot, App, Signing string }

// Secrets returns the secrets. It reads those that are in files.
func (c Slack) Secrets() (s SlackSecrets, err error) {
	for _, one := range []struct {
		to     *string
		secret telemetry.Secret
		file   string
	}{{&s.Bot, c.BotToken, c.BotTokenFile}, {&s.App, c.AppToken, c.AppTokenFile}, {&s.Signing, c.SigningSecret, c.SigningSecretFile}} {
		if *one.to, err = secret(one.secret, one.file); err != nil {
			return s, fmt.Errorf("reading a secret of approver.slack: %w", err)
		}
	}
	return s, nil
}

// Channel returns the channel of a group, or "" if it has none.
func (c Slack) Channel(group string) string {
	if id := c.Channels[group]; id != "" {
		return id
	}
	return c.DefaultChannel
}
