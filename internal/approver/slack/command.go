package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/pkg/schema"
)

// Command is what people type in Slack.
const Command = "/callyard"

// reply is the answer to a command, for who typed it only.
type reply struct {
	Type string `json:"response_type"`
	Text string `json:"text"`
}

func (f *Face) serveCommand(ctx context.Context, w http.ResponseWriter, form url.Values) {
	for _, name := range []string{"team_id", "api_app_id", "user_id", "command", "text"} {
		if len(form[name]) > 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	c := api.SlashCommand{TeamID: form.Get("team_id"), APIAppID: form.Get("api_app_id"), UserID: form.Get("user_id"), UserName: form.Get("user_name"), Command: form.Get("command"), Text: form.Get("text")}
	if !f.ours(&c) {
		f.o.Log.Warn("a command of Slack was refused: it is of another workspace or app")
		w.WriteHeader(http.StatusForbidden)
		return
	}
	body, err := json.Marshal(f.command(ctx, &c))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // Slack went away; nobody is left to be told
}

func (f *Face) ours(c *api.SlashCommand) bool {
	return c.TeamID == f.o.Config.TeamID && c.APIAppID == f.o.Config.AppID && c.UserID != ""
}

// command does what somebody typed and returns what they are told.
func (f *Face) command(ctx context.Context, c *api.SlashCommand) reply {
	text, err := f.obey(ctx, c)
	if err != nil {
		text = schema.AsError(err).Detail
	}
	return reply{Type: "ephemeral", Text: escape(text)}
}

// escape keeps a text from being read as markup.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func (f *Face) obey(ctx context.Context, c *api.SlashCommand) (string, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(c.Text), " ")
	switch strings.ToLower(verb) {
	case "connect":
		code := strings.TrimSpace(rest)
		if code == "" {
			break
		}
		if err := f.o.People.Typed(ctx, code, enrol.User{Team: c.TeamID, ID: c.UserID, Name: clean(c.UserName)}); err != nil {
			return "", err
		}
		return "Now go back to the page and confirm that this account is yours. Until then nothing is connected. If you did not get the code yourself, on a page where you are signed in, do nothing.", nil
	case "disconnect":
		if err := f.o.People.RemoveUser(ctx, c.TeamID, c.UserID); err != nil {
			return "", err
		}
		return "Your Slack account is not connected to anybody any more.", nil
	case "status":
		who, err := f.o.People.Of(ctx, c.TeamID, c.UserID)
		if err != nil {
			return "", err
		}
		return "You are " + clean(who.Name) + ", in the groups " + clean(strings.Join(who.Groups, ", ")) + ".", nil
	}
	return "To connect your account: sign in at " + f.o.Page("") + "slack and get a code, then type " + Command + " connect CODE. Also: " + Command + " status, " + Command + " disconnect.", nil
}
