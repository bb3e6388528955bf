package slack

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/kit/plainjson"
)

// Manifest returns the manifest of the app, in YAML or JSON, for Slack's page "From a manifest".
// public is the address at which Slack reaches the approver; empty means Socket Mode. The manifest
// requests only the permissions to post, and one command.
func Manifest(public string, asJSON bool) ([]byte, error) {
	base := strings.TrimSuffix(public, "/")
	if public != "" {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.ContainsAny(base, "\"\\ \n") {
			return nil, fmt.Errorf("the URL at which Slack reaches the approver must have the form https://approve.example.com; without a URL the manifest is for Socket mode")
		}
	}
	type object = map[string]any
	command := object{"command": Command, "description": "Connect your account to the approver", "usage_hint": "connect CODE | status | disconnect", "should_escape": false}
	interactivity := object{"is_enabled": true}
	if base != "" {
		command["url"] = base + CommandsPath
		interactivity["request_url"] = base + InteractionsPath
	}
	if asJSON {
		var b bytes.Buffer
		e := plainjson.NewEncoder(&b)
		e.SetIndent("", "  ")
		err := e.Encode(object{
			"_metadata":           object{"major_version": 1},
			"display_information": object{"name": "Callyard", "description": about, "background_color": "#1f3a5f"},
			"features": object{
				"bot_user":       object{"display_name": "Callyard", "always_online": true},
				"slash_commands": []object{command},
			},
			"oauth_config": object{"scopes": object{"bot": []string{"chat:write", "commands"}}},
			"settings":     object{"interactivity": interactivity, "org_deploy_enabled": false, "socket_mode_enabled": base == "", "token_rotation_enabled": false},
		})
		return b.Bytes(), err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("_metadata:\n  major_version: 1")
	line("display_information:\n  name: Callyard\n  description: %s\n  background_color: \"#1f3a5f\"", about)
	line("features:\n  bot_user:\n    display_name: Callyard\n    always_online: true")
	line("  slash_commands:\n    - command: %s\n      description: %s\n      usage_hint: %q\n      should_escape: false", Command, command["description"], command["usage_hint"])
	if base != "" {
		line("      url: %s", command["url"])
	}
	line("oauth_config:\n  scopes:\n    bot:\n      - chat:write\n      - commands")
	line("settings:\n  interactivity:\n    is_enabled: true")
	if base != "" {
		line("    request_url: %s", interactivity["request_url"])
	}
	line("  org_deploy_enabled: false\n  socket_mode_enabled: %t\n  token_rotation_enabled: false", base == "")
	return []byte(b.String()), nil
}

const about = "Asks people to approve risky tool calls"
