// Package bfcl checks tool calls by the rules of the Berkeley Function Calling Leaderboard,
// version 4: its AST checker for Python, Java and JavaScript functions, and its categories
// with and without a relevant function.
//
// It follows the official checker (ast_checker.py and the two type converters of bfcl-eval
// 2026.3.23) down to its peculiarities; a test compares the two on 20,000 made answers. It
// checks conversations of several turns by results and states that others bring, because it
// has no back ends of the leaderboard. It does not know the "language" of a category that is
// not listed there: it takes Python.
package bfcl
