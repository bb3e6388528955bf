// Package model sends conversations to the APIs of language models and reads their answers.
//
// It owns four implementations of [Wire]: OpenAI chat completions (and the many servers that
// support them), OpenAI Responses, Anthropic Messages and Gemini. Each writes a request and reads an
// answer, complete or streamed. A stream is assembled to the body that the same answer has without
// streaming. Messages that are sent back in the conversation keep their original bytes, because
// Anthropic and Gemini sign parts of an answer together with their position.
//
// It does not run tools, store a conversation, or know prices.
//
// Sources: the API references of OpenAI (chat completions, Responses), Anthropic (Messages,
// streaming) and Google (generateContent, thought signatures), as of November 2026.
package model
