"""Records: exchanges, reports and the pairs that join them; never lose an acknowledged one."""
