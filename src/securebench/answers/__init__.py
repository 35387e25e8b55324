"""How a text answer is read: grammars from text to typed values. Pure, total, linear; nothing is ever evaluated."""
