// Package bfcl checks tool calls by the rules of the Berkeley Function Calling Leaderboard, version
// 4: its AST checker for Python, Java and JavaScript functions, and its categories with and without
// a relevant function.
//
// It matches the official checker (ast_checker.py and the two type converters of bfcl-eval
// 2026.3.23) including its peculiarities. A test compares both on 20,000 generated answers. It
// checks conversations of several turns by the results and states that the caller provides, because
// it does not contain the back ends of the leaderboard. The language of an unlisted category is
// Python.
package bfcl
