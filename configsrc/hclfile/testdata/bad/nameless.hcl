{ a = 1 b = 2 } # ERROR: nothing stands before the first "{"
