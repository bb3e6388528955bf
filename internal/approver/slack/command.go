package slack

import (
	"context"
	"strings"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/pkg/schema"
)

// Command is the slash command in Slack.
const Command = "/callyard"

// commands handles slash commands. It is safe for concurrent use.
type commands struct{ o *Options }

// reply is the response to a command. Only the sender sees it.
type reply struct {
	Type string `json:"response_type"`
	Text string `json:"text"`
}

// answer executes a command and returns the reply.
func (c *commands) answer(ctx context.Context, typed *api.SlashCommand) reply {
	text, err := c.obey(ctx, typed)
	if err != nil {
		text = schema.AsError(err).Detail
	}
	return reply{Type: "ephemeral", Text: escape(text)}
}

// escape escapes text, so that Slack does not parse it as markup.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func (c *commands) obey(ctx context.Context, typed *api.SlashCommand) (string, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(typed.Text), " ")
	switch strings.ToLower(verb) {
	case "connect":
		code := strings.TrimSpace(rest)
		if code == "" {
			break
		}
		if err := c.o.People.Typed(ctx, code, enrol.User{Team: typed.TeamID, ID: typed.UserID, Name: clean(typed.UserName)}); err != nil {
			return "", err
		}
		return "Now return to the page and confirm that this account is yours. Until then it is not connected. If you did not get the code yourself, on a page where you are signed in, do nothing.", nil
	case "disconnect":
		if err := c.o.People.RemoveUser(ctx, typed.TeamID, typed.UserID); err != nil {
			return "", err
		}
		return "Your Slack account is disconnected.", nil
	case "status":
		who, err := c.o.People.Of(ctx, typed.TeamID, typed.UserID)
		if err != nil {
			return "", err
		}
		return "You are " + clean(who.Name) + ", in the groups " + clean(strings.Join(who.Groups, ", ")) + ".", nil
	}
	return "To connect your account: sign in at " + c.o.Page("") + "slack and get a code, then type " + Command + " connect CODE. Also: " + Command + " status, " + Command + " disconnect.", nil
}
