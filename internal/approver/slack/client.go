package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	api "github.com/slack-go/slack"

	"github.com/callyard/callyard/internal/approver/notify"
)

// client sends requests to Slack, each with its timeout. It is safe for concurrent use.
type client struct{ api *api.Client }

// send posts a new message and returns its ID. more holds options in addition to the card.
func (c *client) send(ctx context.Context, channel string, shown card, more ...api.MsgOption) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, postFor)
	defer cancel()
	_, ts, err := c.api.PostMessageContext(ctx, channel, append(options(shown), more...)...)
	return ts, err
}

func options(c card) []api.MsgOption {
	all := []api.MsgOption{api.MsgOptionText(c.text, true), api.MsgOptionDisableLinkUnfurl(), api.MsgOptionDisableMediaUnfurl()}
	if c.blocks != nil {
		all = append(all, api.MsgOptionBlocks(c.blocks...))
	}
	return all
}

func (c *client) update(ctx context.Context, channel, ts string, shown card) error {
	ctx, cancel := context.WithTimeout(ctx, updateFor)
	defer cancel()
	_, _, _, err := c.api.UpdateMessageContext(ctx, channel, ts, options(shown)...)
	return err
}

// open opens a modal for the person who caused the trigger.
func (c *client) open(ctx context.Context, trigger string, v api.ModalViewRequest) error {
	ctx, cancel := context.WithTimeout(ctx, updateFor)
	defer cancel()
	_, err := c.api.OpenViewContext(ctx, trigger, v)
	return err
}

// whisper posts an ephemeral message that only one person in the channel sees.
func (c *client) whisper(ctx context.Context, channel, user, text string) error {
	ctx, cancel := context.WithTimeout(ctx, updateFor)
	defer cancel()
	_, err := c.api.PostEphemeralContext(ctx, channel, user, api.MsgOptionText(text, true), api.MsgOptionDisableLinkUnfurl())
	return err
}

// codeOf returns the error code of Slack, or "" for other errors.
func codeOf(err error) string {
	if answer, ok := errors.AsType[api.SlackErrorResponse](err); ok {
		return answer.Err
	}
	return ""
}

// unfit reports whether Slack rejected the content of a message.
func unfit(err error) bool {
	return slices.Contains([]string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_arguments"}, codeOf(err))
}

// isMessageGone reports whether the message does not exist, or cannot be changed any longer.
func isMessageGone(err error) bool {
	return slices.Contains([]string{"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"}, codeOf(err))
}

// retry maps an error of Slack to the time of the next attempt.
func retry(err error) error {
	if limited, ok := errors.AsType[*api.RateLimitedError](err); ok {
		return &notify.Wait{For: max(limited.RetryAfter, time.Second), Err: err}
	}
	switch code := codeOf(err); code {
	case "":
		return fmt.Errorf("reaching Slack: %w", err)
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org":
		return fmt.Errorf("Slack has a problem: %w", err)
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return &notify.Wait{For: 5 * time.Second, Err: err}
	case "channel_not_found", "not_in_channel":
		return &notify.Wait{For: brokenFor, Err: fmt.Errorf("invite the app to its channel (/invite @Callyard), and check that approver.slack.channels has the correct id: %w", err)}
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope", "no_permission", "is_archived", "restricted_action", "access_denied", "org_login_required", "ekm_access_denied":
		return &notify.Wait{For: brokenFor, Err: fmt.Errorf("an operator has to fix the app or its channel: %w", err)}
	}
	if unfit(err) || isMessageGone(err) {
		return &notify.Never{Err: err}
	}
	// The codes that Slack documents are not all that it sends. A card that is dropped is missing until
	// the deadline of its request.
	return &notify.Wait{For: brokenFor, Alone: true, Err: err}
}
