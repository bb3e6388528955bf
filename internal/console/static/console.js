// What the console's pages do beyond the script of all pages. They also work without it.
"use strict";
