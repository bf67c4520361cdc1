// Loads the images of a trial that was chosen after the response before it: the same ones in every condition.

export const offer = (_, stretch) => stretch.prepare("trial");
