# ok
{"project": "# ERROR: this is JSON
"}
